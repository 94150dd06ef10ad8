// The versions of this site, where `versions.json` lists them beside the folder of this one; nothing on a single copy.
(function () {
  "use strict";
  const script = document.querySelector('script[src$="site/versions.js"]');
  const root = new URL("..", script.src); // the folder of this version
  const current = root.pathname.split("/").filter(Boolean).pop();
  if (location.protocol === "file:") return;
  fetch(new URL("../versions.json", root)).then((reply) => (reply.ok ? reply.json() : [])).then((names) => {
    if (!Array.isArray(names) || names.length < 2) return;
    const chooser = document.createElement("select");
    chooser.id = "versions";
    chooser.className = "form-select form-select-sm";
    chooser.setAttribute("aria-label", "Version of these pages");
    for (const name of names) {
      const option = document.createElement("option");
      option.textContent = option.value = name;
      option.selected = name === current;
      chooser.append(option);
    }
    chooser.addEventListener("change", () => { location.href = new URL("../" + chooser.value + "/", root); });
    document.querySelector(".navbar .container").append(chooser);
  }).catch(() => { /* no list: a single version */ });
})();
