// Search in pages opened as files: browsers start no workers there, so a hidden frame does the work.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.ready = new Promise((done) => {
        const scope = this.scope;
        scope.postMessage = (data) => this.answer(data);
        scope.importScripts = (...sources) =>
          sources.reduce((before, source) => before.then(() => load(scope, source)), Promise.resolve());
        load(scope, url).then(done);
      });
    }

    answer(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    }

    postMessage(data) {
      const { scope } = this;
      this.ready.then(() => scope.dispatchEvent(new scope.MessageEvent("message", { data })));
    }

    terminate() {
      this.scope.frameElement.remove();
    }
  };

  function load(scope, source) {
    return new Promise((done, failed) => {
      const script = scope.document.createElement("script");
      script.src = new URL(source, location.href);
      script.onload = done;
      script.onerror = failed;
      scope.document.head.append(script);
    });
  }
}
