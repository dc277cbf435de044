import { useState } from "react";

const place = "millrace.theme";
const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];

const kept = (): Theme => themes.find((theme) => theme === localStorage.getItem(place)) ?? "system";

function wear(theme: Theme): void {
  document.documentElement.style.colorScheme = theme === "system" ? "light dark" : theme;
}

/** Wears the theme that was chosen here before. */
export const wearKept = (): void => wear(kept());

/** Goes from the system's theme to light, to dark, and back. */
export function ThemeButton() {
  const [theme, setTheme] = useState(kept);
  function next() {
    const other = themes[(themes.indexOf(theme) + 1) % themes.length] as Theme;
    localStorage.setItem(place, other);
    wear(other);
    setTheme(other);
  }
  return (
    <button type="button" className="quiet" onClick={next}>
      Theme: {theme}
    </button>
  );
}
