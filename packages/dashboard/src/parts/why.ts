/** Why something could not be read or done, for a person. */
export function whyOf(error: Error): string {
  // how browsers tell that no reply came
  if (error instanceof TypeError) return `The server does not answer (${error.message}). Is it being started again?`;
  if (error instanceof SyntaxError) return "What answered is not the server: a proxy in front of it may be.";
  return error.message;
}
