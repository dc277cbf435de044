export { span } from "@millrace/api/words";
