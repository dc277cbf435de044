import type { Clock } from "../clock.js";
import { limits } from "../limits/index.js";

interface Room {
  /** How many jobs waited when this was read. */
  waiting: number;
  /** Places given that the number read may not contain. */
  given: number;
  /** Places given to jobs that are being stored. */
  open: number;
  readAt: number;
  reading: Promise<void> | undefined;
}

/**
 * The room in users' queues. Jobs that are being stored count as waiting, so that submissions which arrive together stay
 * within the quota; only those that other servers have accepted since the last read are unknown here.
 */
export class QueueRoom {
  readonly #clock: Clock;
  readonly #rooms = new WeakMap<object, Room>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Takes a place, to be left once its job is stored or refused; undefined if `most` jobs wait.
   * `user`: whose queue it is. `count`: reads how many of the user's jobs wait.
   */
  async enter(user: object, most: number, count: () => Promise<number>): Promise<(() => void) | undefined> {
    const room = this.#roomOf(user);
    if (this.#clock.now() >= room.readAt + limits.queueRoomKnownMs) room.reading ??= this.#read(room, count);
    await room.reading;
    if (room.waiting + room.given >= most) return undefined;
    room.given++;
    room.open++;
    return () => {
      room.open--;
    };
  }

  #roomOf(user: object): Room {
    let room = this.#rooms.get(user);
    if (!room) {
      room = { waiting: 0, given: 0, open: 0, readAt: Number.NEGATIVE_INFINITY, reading: undefined };
      this.#rooms.set(user, room);
    }
    return room;
  }

  /** No place is given meanwhile. */
  async #read(room: Room, count: () => Promise<number>): Promise<void> {
    try {
      room.given = room.open;
      room.waiting = await count();
      room.readAt = this.#clock.now();
    } finally {
      room.reading = undefined;
    }
  }
}
