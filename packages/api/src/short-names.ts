/** 64 of each: two words stand for an id where a person reads. */
const qualities = `amber azure bold brave brisk bronze calm clear clever copper coral crimson dapper deep eager early
fair fast fine fleet fresh gentle glad golden grand green grey happy hazel humble ivory jade jolly keen kind light
lively loyal lucid mellow merry misty noble olive plain plucky prime proud quick quiet ready round rusty sandy sharp
silver sleek smooth solid steady sunny swift vivid warm`.split(/\s+/);
const creatures = `ant badger bat bear beaver bee bison boar bream carp cat cod cougar crab crane crow deer dove duck
eagle eel egret elk falcon ferret finch fox frog gecko goat goose gull hare hawk heron horse ibex jay koala lark lemur
lion lynx mole moose moth mouse newt otter owl ox panda perch pike puma quail raven robin seal shrew snail swan
tern wren`.split(/\s+/);

/**
 * A name for people, such as `amber-fox`, that stands for an id of a worker. The same id always has the same name, but
 * so may another one, 1 in 4,096.
 */
export function shortName(id: string): string {
  let hash = 0x811c9dc5;
  for (let n = 0; n < id.length; n++) hash = Math.imul(hash ^ id.charCodeAt(n), 0x01000193) >>> 0;
  return `${qualities[(hash >>> 6) % qualities.length]}-${creatures[(hash >>> 12) % creatures.length]}`;
}

/** The last characters of a job's id that differ from job to job, for lines that people read. */
export const shortJobId = (id: string): string => id.replace(/-[a-z]\d+$/, "").slice(-6);
