// Zoom, search and details of a flame graph that stands in this document. No less-than sign and no ampersand: the same
// text is read as HTML and as XML.
(function () {
  "use strict";
  var svg = document.getElementById("flamegraph");
  var margin = Number(svg.dataset.margin);
  var width = Number(svg.dataset.width) - 2 * margin;
  var letter = Number(svg.dataset.letter);
  var byId = function (id) { return document.getElementById(id); };
  var frames = Array.from(svg.querySelectorAll(".f")).map(function (group) {
    return {
      group: group,
      rect: group.querySelector("rect"),
      text: group.querySelector("text"),
      title: group.querySelector("title").textContent,
      x: Number(group.dataset.x),
      w: Number(group.dataset.w),
      depth: Number(group.dataset.d),
      value: Number(group.dataset.v)
    };
  });
  var nameOf = function (frame) { return frame.title.split("\n")[0]; };

  function label(name, wide) {
    var letters = Math.floor((wide - 6) / letter);
    if (3 > letters) return "";
    return letters >= name.length ? name : name.slice(0, letters - 1) + "\u2026";
  }

  function show(frame, x, wide) {
    frame.group.classList.remove("hidden");
    frame.rect.setAttribute("x", x);
    frame.rect.setAttribute("width", Math.max(wide - 0.4, 0.02));
    frame.text.setAttribute("x", x + 3);
    frame.text.textContent = label(nameOf(frame), wide);
  }

  function zoom(target) {
    var scale = width / target.w;
    var end = target.x + target.w;
    frames.forEach(function (frame) {
      var above = target.depth > frame.depth;
      var middle = frame.x + frame.w / 2;
      frame.group.classList.toggle("context", above);
      if (above ? target.x + 1e-3 >= frame.x && frame.x + frame.w + 1e-3 >= end : middle >= target.x && end >= middle) {
        if (above) show(frame, margin, width);
        else show(frame, margin + (frame.x - target.x) * scale, frame.w * scale);
      } else {
        frame.group.classList.add("hidden");
      }
    });
    byId("reset").style.visibility = target.depth === 0 ? "hidden" : "visible";
  }

  // Marks what matches and says which share of the root is in it; a match below a match is counted once.
  function search(text) {
    var wanted = text.toLowerCase();
    var spans = [];
    frames.forEach(function (frame) {
      var hit = wanted !== "" ? nameOf(frame).toLowerCase().includes(wanted) : false;
      frame.group.classList.toggle("match", hit);
      if (hit) spans.push(frame);
    });
    spans.sort(function (a, b) { return a.x - b.x || b.w - a.w; });
    var covered = 0;
    var reach = -1;
    spans.forEach(function (frame) {
      if (frame.x + 1e-3 >= reach) {
        covered += frame.value;
        reach = frame.x + frame.w;
      }
    });
    byId("found").textContent =
      wanted === "" ? "" : "\u201c" + text + "\u201d: " + (100 * covered / frames[0].value).toFixed(2) + "%";
    byId("search").textContent = wanted === "" ? "Search" : "Clear search";
    searching = wanted !== "";
  }
  var searching = false;
  function toggleSearch() {
    if (searching) return search("");
    var text = window.prompt("Part of a function's name:");
    if (text) search(text);
  }

  frames.forEach(function (frame) {
    frame.group.addEventListener("click", function () { zoom(frame); });
    frame.group.addEventListener("mouseenter", function () {
      byId("details").textContent = frame.title.split("\n").join("  \u00b7  ");
    });
  });
  svg.addEventListener("mouseleave", function () { byId("details").textContent = ""; });
  byId("search").addEventListener("click", toggleSearch);
  byId("reset").addEventListener("click", function () { zoom(frames[0]); });
  document.addEventListener("keydown", function (event) {
    if (frames.length === 0) return;
    if (event.key === "Escape") { search(""); zoom(frames[0]); }
    if (event.key === "/" || (event.ctrlKey ? event.key === "f" : false)) { event.preventDefault(); toggleSearch(); }
  });
})();
