// The page of the HTTP interface: Swagger UI over this server's own description, with this tab's key.
"use strict";

{
  const { call, keyHeaders } = Turinglike;

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
      deepLinking: true,
      defaultModelsExpandDepth: 0,
      tryItOutEnabled: true,
      validatorUrl: null, // which would be somebody else's
      requestInterceptor: (request) => {
        Object.assign(request.headers, keyHeaders());
        return request;
      },
    });
  }

  show();
}
