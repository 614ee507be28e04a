/* Search in pages that are opened from a folder: browsers start no workers there, so a frame stands in for one. Without
   this file, the plugin `offline` of the theme would load one from another host. */
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source !== this.inside) return;
        this.dispatchEvent(new MessageEvent("message", { data: event.data }));
        if (this.onmessage) this.onmessage(event);
      });
      const page = this.inside.document;
      page.open();
      page.write(
        "<!doctype html><script>" +
          "postMessage = (data) => parent.dispatchEvent(new MessageEvent('message', { data, source: window }));" +
          "importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done) => {" +
          "const script = document.createElement('script'); script.src = url; script.onload = done;" +
          "document.body.appendChild(script); })), Promise.resolve());" +
          "<\/script><body>",
      );
      page.close();
      this.ready = new Promise((done) => {
        const script = page.createElement("script");
        script.src = url;
        script.onload = done;
        page.body.appendChild(script);
      });
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data, source: window })));
    }
    terminate() {}
  };
}
