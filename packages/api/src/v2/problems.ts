import Type from "typebox";

/** An error of REST v2: RFC 9457, with this project's code. */
export const Problem = Type.Object({
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String(),
  errors: Type.Optional(Type.Array(Type.String())),
  code: Type.String(),
  requestId: Type.String(),
});
