const place = "millrace.theme";
export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

/** The theme that was chosen in this browser. */
export const keptTheme = (): Theme => themes.find((theme) => theme === localStorage.getItem(place)) ?? "system";

/** Shows a theme from now on, and keeps it for the next visit. */
export function keepTheme(theme: Theme): void {
  localStorage.setItem(place, theme);
  wear(theme);
}

/** Wears the theme that was chosen here before. */
export const wearKept = (): void => wear(keptTheme());

function wear(theme: Theme): void {
  document.documentElement.style.colorScheme = theme === "system" ? "light dark" : theme;
}
