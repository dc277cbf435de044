import { nothingIsLostOn } from "./campaign/judged.js";

nothingIsLostOn("postgres");
