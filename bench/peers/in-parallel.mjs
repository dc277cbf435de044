/** Runs `act` `count` times, at most `width` of them at once. */
export async function inParallel(width, count, act) {
  let left = count;
  const lane = async () => {
    while (left-- > 0) await act();
  };
  await Promise.all(Array.from({ length: width }, lane));
}
