import { nothingIsLostOn } from "./campaign/judged.js";

nothingIsLostOn("sqlite");
