/** The version of this package, told to the server with every ping; a test keeps it equal to package.json. */
export const version = "0.1.0";
