#pragma once

#include <string>
#include <string_view>

#include "cli/flame_graph.h"

namespace tributary::cli {

// A flame graph as one file that needs nothing else: an SVG, or a page around it. Root on top; a frame is as wide as
// its share. Frames carry a tooltip; a script in the file zooms on click and marks what a search finds; without
// scripts the picture still reads. Colours follow from the name: warm for user code, cool for the kernel, green for
// inlined frames, grey for unknown ones.
struct PictureOptions {
  std::string title;  // "what was profiled"; escaped here
  Unit unit = Unit::kValue;
};
std::string WriteSvg(const FlameGraph& graph, const PictureOptions& options);
std::string WriteHtml(const FlameGraph& graph, const PictureOptions& options);

// Text and attribute values of XML and HTML. Bytes that neither may hold (controls, ill-formed UTF-8) become \xNN.
std::string EscapeXml(std::string_view text);

// "#rrggbb", by the name and the colour key of its kind.
std::string FrameColor(std::string_view name, std::string_view color);

}  // namespace tributary::cli
