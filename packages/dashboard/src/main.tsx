import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { wearKept } from "./parts/frame/kept-theme.js";
import { makeRouter } from "./router.js";
import { saysNo, signInByLink } from "./session.js";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/tables.css";
import "./styles/forms.css";
import "./styles/story.css";

const queries = new QueryClient({
  defaultOptions: {
    // the stream of changes says when something is old
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      retry: (failures, error) => failures === 0 && !saysNo(error),
      refetchOnWindowFocus: false,
    },
  },
});
const router = makeRouter(queries);
wearKept();
await signInByLink();

createRoot(document.getElementById("app") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
