/** The sign of Millrace: water in its channel. */
export const Mark = () => <img src="/icon.svg" alt="" width="20" height="20" className="mark" />;
