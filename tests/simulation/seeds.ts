/** Seeds that run every time, whatever histories they give now. */
export const seeds = [17, 26, 42, 391, 1002, 1121, 5096, 5145, 30238, 170092, 170101, 160361, 160380, 160381];
