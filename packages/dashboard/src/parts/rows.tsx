/** A table that is being loaded: the real layout, without its content. */
export const Rows = ({ columns, rows = 6 }: { readonly columns: number; readonly rows?: number }) => (
  <div className="rows" role="status" aria-label="Loading">
    {Array.from({ length: rows }, (_, row) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: they have nothing else, and never change places
      <div className="row" key={row}>
        {Array.from({ length: columns }, (_, column) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same
          <span key={column} />
        ))}
      </div>
    ))}
  </div>
);
