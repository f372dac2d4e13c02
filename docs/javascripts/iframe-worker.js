/* Search without a server: browsers start no worker from a folder, so its script runs in a hidden
   frame instead. The name is the one by which the offline plugin knows that it need not load such a
   shim from outside; the theme's worker asks for `IFrameWorker`. */
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...scripts) =>
        scripts.reduce((before, src) => before.then(() => load(inside, src)), Promise.resolve());
      this.ready = load(inside, script);
    }

    async postMessage(data) {
      await this.ready;
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };

  const load = (inside, src) =>
    new Promise((resolve, reject) => {
      const script = inside.document.createElement("script");
      Object.assign(script, { src, onload: resolve, onerror: reject });
      inside.document.body.append(script);
    });
}
