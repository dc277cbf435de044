import { useState } from "react";
import { keepTheme, keptTheme, type Theme, themes } from "./kept-theme.js";

/** Goes from the system's theme to light, to dark, and back. */
export function ThemeButton() {
  const [theme, setTheme] = useState(keptTheme);
  function next() {
    const other = themes[(themes.indexOf(theme) + 1) % themes.length] as Theme;
    keepTheme(other);
    setTheme(other);
  }
  return (
    <button type="button" className="quiet" onClick={next}>
      Theme: {theme}
    </button>
  );
}
