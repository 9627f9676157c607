#pragma once

#include <string>
#include <string_view>

#include "cli/flame_graph.h"

namespace tributary::cli {

// WriteSvg and WriteHtml draw a flame graph into one self-contained file: an SVG image, or an HTML page that contains
// the SVG image. The root is at the top. The width of a frame is its share of the root's total value. Each frame has a
// tooltip. A script in the file zooms on click and marks search results. The picture is readable without the script
// too. The frame's kind decides the colour: warm for user code, yellow for Python, purple for code from JIT compilers,
// cool for the kernel, green for inlined frames, grey for unknown frames. The frame's name decides the shade.
struct PictureOptions {
  std::string title;  // the profiled command or query; WriteSvg and WriteHtml escape it
  Unit unit = Unit::kValue;
};
std::string WriteSvg(const FlameGraph& graph, const PictureOptions& options);
std::string WriteHtml(const FlameGraph& graph, const PictureOptions& options);

// Escapes text and attribute values for XML and HTML. Bytes that XML does not allow (control characters, ill-formed
// UTF-8) become \xNN.
std::string EscapeXml(std::string_view text);

// Returns the fill colour of a frame, as "#rrggbb". `color` is the colour key of the frame's kind (FrameKind::color).
// The name decides the shade.
std::string FrameColor(std::string_view name, std::string_view color);

}  // namespace tributary::cli
