/** The version of this package, sent with every ping; a test keeps it equal to package.json. */
export const version = "0.1.0";
