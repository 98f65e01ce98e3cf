// Light or dark: as the system has it, or as the user chose here.
import { useEffect, useState } from "preact/hooks";

export type Theme = "system" | "light" | "dark";
const kKey = "troupe-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function stored(): Theme {
  try {
    const theme = localStorage.getItem(kKey);
    return theme === "light" || theme === "dark" ? theme : "system";
  } catch {
    return "system"; // no storage in this browser: the choice lasts as long as the page
  }
}

let chosen = stored();

function apply(): void {
  document.documentElement.dataset["theme"] = chosen === "system" ? (system.matches ? "dark" : "light") : chosen;
  listeners.forEach((listener) => listener());
}

system.addEventListener("change", apply);
apply();

export function setTheme(theme: Theme): void {
  chosen = theme;
  try {
    localStorage.setItem(kKey, theme);
  } catch {
    // as above
  }
  apply();
}

/** The choice, and a number that changes with what is drawn: canvases draw again. */
export function useTheme(): { theme: Theme; dark: boolean } {
  const [, redraw] = useState(0);
  useEffect(() => {
    const changed = (): void => redraw((n) => n + 1);
    listeners.add(changed);
    return () => void listeners.delete(changed);
  }, []);
  return { theme: chosen, dark: document.documentElement.dataset["theme"] === "dark" };
}

/** A colour of the style sheet, e.g. token("accent"). */
export const token = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
