export default (input) => input;
