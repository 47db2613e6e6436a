import "./style/index.css";
import { render } from "preact";
import { App } from "./app";
import { applyTheme } from "./theme";

applyTheme();
const page = document.getElementById("page");
if (page) render(<App />, page);

// Cache the page for offline use. In development Vite serves the files itself.
if (import.meta.env.PROD && "serviceWorker" in navigator) {
  void navigator.serviceWorker.register("/sw.js").catch(() => undefined);
}
