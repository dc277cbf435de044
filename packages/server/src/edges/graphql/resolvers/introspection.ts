import { defaultFieldResolver, introspectionTypes, isObjectType } from "graphql";
import type { Context } from "./context.js";

/**
 * Lets the answers to our queries count what they tell of the schema. These fields have resolvers of their own, which
 * belong to the library and to all schemas; elsewhere there is no answer to count in.
 */
export function countIntrospection(): void {
  for (const type of introspectionTypes.filter(isObjectType))
    for (const field of Object.values(type.getFields())) {
      const { resolve = defaultFieldResolver } = field;
      field.resolve = (source, args, context: Partial<Context> | undefined, info) => {
        const value = resolve(source, args, context, info);
        context?.answer?.addIntrospected(value);
        return value;
      };
    }
}
