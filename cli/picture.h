#pragma once

#include <string>
#include <string_view>

#include "cli/flame_graph.h"

namespace tributary::cli {

// A flame graph as one self-contained file: an SVG, or a page around it. The root is on top; a frame's width is its
// share. Frames have a tooltip. A script in the file zooms on click and marks search results. Without scripts, the
// picture is still readable. The frame's kind decides the colour: warm for user code, cool for the kernel, green for
// inlined frames, grey for unknown frames. The name decides the shade.
struct PictureOptions {
  std::string title;  // the profiled command or query; WriteSvg and WriteHtml escape it
  Unit unit = Unit::kValue;
};
std::string WriteSvg(const FlameGraph& graph, const PictureOptions& options);
std::string WriteHtml(const FlameGraph& graph, const PictureOptions& options);

// Escapes text and attribute values for XML and HTML. Bytes that neither of them allows (controls, ill-formed UTF-8)
// become \xNN.
std::string EscapeXml(std::string_view text);

// Returns "#rrggbb", chosen by the name and by the colour key of its kind.
std::string FrameColor(std::string_view name, std::string_view color);

}  // namespace tributary::cli
