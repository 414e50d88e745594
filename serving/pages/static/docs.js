// The page of the HTTP interface: Swagger UI over this server's own description, with this tab's key.
"use strict";

{
  const { call, keyHeaders } = Turinglike;

  /** Swagger UI is dark where the root has this class. */
  function follow(scheme) {
    document.documentElement.classList.toggle("dark-mode", scheme.matches);
  }

  /** What Swagger UI leaves without a name, and what only a mouse can scroll there. */
  function mend(page) {
    for (const field of page.querySelectorAll("textarea:not([aria-label])"))
      field.setAttribute("aria-label", "The body of the request");
    for (const block of page.querySelectorAll("pre:not([tabindex])")) block.setAttribute("tabindex", "0");
  }

  async function show() {
    let spec;
    try {
      spec = (await call("openapi.json")).value;
    } catch (error) {
      const why = error.status === 401 ? "give the key on this server's page, /, and come back in the same tab" : "";
      document.getElementById("docs").textContent = `There is no description: ${error.message}. ${why}`;
      return;
    }
    SwaggerUIBundle({
      spec,
      dom_id: "#docs",
      defaultModelsExpandDepth: 0,
      tryItOutEnabled: true,
      validatorUrl: null, // which would be somebody else's
      requestInterceptor: (request) => {
        Object.assign(request.headers, keyHeaders());
        return request;
      },
    });
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => follow(dark));
  follow(dark);
  const page = document.getElementById("docs");
  new MutationObserver(() => mend(page)).observe(page, { childList: true, subtree: true });
  show();
}
