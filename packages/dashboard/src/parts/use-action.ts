import { useMutation, useQueryClient } from "@tanstack/react-query";

/** Something that changes the server; afterwards everything shown is read again. */
export function useAction<T>(act: () => Promise<T>, done: (result: T) => void = () => {}) {
  const queries = useQueryClient();
  const { mutate, isPending, error, data, reset } = useMutation({
    mutationFn: act,
    onSuccess: (result) => {
      void queries.invalidateQueries();
      done(result);
    },
  });
  return { run: () => mutate(), isBusy: isPending, error, result: data, reset };
}
