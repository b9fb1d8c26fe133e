// What does not depend on the picture: the colours, and the script that answers the pointer.
#ifndef ATTEND_TOOLS_ATTENTION_SVG_PARTS_H_
#define ATTEND_TOOLS_ATTENTION_SVG_PARTS_H_

namespace attend::tools {

inline constexpr char kSvgStyle[] = R"css(
text{font:12px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#1f2328}
.h{font:600 19px system-ui,"Helvetica Neue",Arial,sans-serif}
.b{font:600 14px system-ui,"Helvetica Neue",Arial,sans-serif}
.m{font:13px system-ui,"Helvetica Neue",Arial,sans-serif;fill:#59636e}
.s{font:11px system-ui,"Helvetica Neue",Arial,sans-serif;fill:#59636e}
.x{font-size:9px;fill:#59636e}
.v{font-size:11px;pointer-events:none}
.w{fill:#fff}
.bg{fill:#fff}
.p{fill:#f1f4f8}
.c{fill:#1256c4}
.n{fill:#c2410c}
.l,.ln{fill:none;stroke-width:1;stroke:#1256c4;shape-rendering:crispEdges}
.ln{stroke:#c2410c}
.g{cursor:pointer}
.on>.p{stroke:#1f2328;stroke-width:2}
@media(prefers-color-scheme:dark){
text{fill:#e6edf3}
.m,.s,.x{fill:#9198a1}
.bg{fill:#0d1117}
.p{fill:#1b222c}
.c{fill:#6cb6ff}
.w{fill:#0d1117}
.n{fill:#ff9a62}
.l{stroke:#6cb6ff}
.ln{stroke:#ff9a62}
.on>.p{stroke:#e6edf3}
}
)css";

// D: q, k names of rows and columns; layers, heads their numbers; w weights in ten thousandths.
inline constexpr char kSvgScript[] = R"js(
(function () {
  var root = document.getElementById("attend"), Q = D.q.length, K = D.k.length;
  var H = D.heads.length, name = document.getElementById("at-name");
  var point = document.getElementById("at-point");
  var cells = document.getElementById("at-cells");
  function weight(l, h, i, j) {
    if (h >= 0) return D.w[((l * H + h) * Q + i) * K + j] / 1e4;
    for (var sum = 0, n = 0; n < H; ++n) sum += D.w[((l * H + n) * Q + i) * K + j];
    return sum / H / 1e4;
  }
  function title(l, h) {
    return "layer " + D.layers[l] + (h < 0 ? ", mean of " + H + " heads" : ", head " + D.heads[h]);
  }
  function show(panel) {
    var l = +panel.dataset.l, h = +panel.dataset.h;
    var boxes = cells.querySelectorAll("rect"), words = cells.querySelectorAll("text");
    name.textContent = title(l, h);
    root.querySelectorAll(".on").forEach(function (old) { old.classList.remove("on"); });
    panel.classList.add("on");
    for (var i = 0; i < Q; ++i) {
      for (var j = 0; j < K; ++j) {
        var w = weight(l, h, i, j), shade = D.max ? Math.sqrt(Math.abs(w) / D.max) : 0;
        var box = boxes[i * K + j], word = words[i * K + j];
        box.setAttribute("class", w < 0 ? "n" : "c");
        box.setAttribute("fill-opacity", shade);
        box.firstChild.textContent = D.q[i] + " → " + D.k[j] + ": " + w.toFixed(4);
        if (word) {
          word.textContent = w.toFixed(2);
          word.setAttribute("class", shade > 0.6 ? "w v" : "k v");
        }
      }
    }
  }
  root.querySelectorAll(".g").forEach(function (panel) {
    panel.addEventListener("click", function () { show(panel); });
    panel.addEventListener("mousemove", function (event) {
      var box = panel.querySelector(".p").getBoundingClientRect();
      var i = Math.min(Q - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * Q)));
      var j = Math.min(K - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * K)));
      var l = +panel.dataset.l, h = +panel.dataset.h, label = panel.querySelector("title");
      var text = D.q[i] + " → " + D.k[j] + ": " + weight(l, h, i, j).toFixed(4);
      point.textContent = text;
      label.textContent = title(l, h) + "\n" + text;
    });
  });
})();
)js";

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_ATTENTION_SVG_PARTS_H_
