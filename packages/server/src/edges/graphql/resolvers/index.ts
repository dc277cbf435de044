import { accountResolvers } from "./account.js";
import { catalogResolvers } from "./catalog.js";
import { endpointResolvers } from "./endpoints.js";
import { hostedResolvers } from "./hosted.js";
import { podResolvers } from "./pods.js";
import { templateResolvers } from "./templates.js";

/** One function or value per field of Query and Mutation, each around one operation. */
export const resolvers = {
  ...endpointResolvers,
  ...templateResolvers,
  ...accountResolvers,
  ...podResolvers,
  ...catalogResolvers,
  ...hostedResolvers,
};
