#include "cli/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/log.h"
#include "base/utf8.h"
#include "cli/text.h"
#include "embedded/flame_graph_css.h"
#include "embedded/flame_graph_js.h"

namespace tributary::cli {
namespace {

constexpr double kWidth = 1200, kMargin = 12, kRowHeight = 18, kHeaderHeight = 74, kFooterHeight = 28;
constexpr double kLetterWidth = 6.7;     // of the 11 px monospace font; rather too wide than too narrow
constexpr double kFrameWidthMin = 0.02;  // narrower frames are left out; a 50-fold zoom shows the rest
constexpr size_t kFramesMax = 30'000;

struct Box {
  int32_t node;
  int depth;
  double x, width;
};

struct Layout {
  std::vector<Box> boxes;
  int depth_max = 0;
  size_t left_out = 0;
};

// Places parents before children, and wide frames before narrow ones. No recursion, since stacks may be deep.
Layout Place(const FlameGraph& graph, Unit unit) {
  Layout layout;
  if (graph.nodes.empty() || graph.nodes[0].total.Of(unit) == 0) return layout;
  auto children = SortedChildren(graph, unit);
  double scale = (kWidth - 2 * kMargin) / static_cast<double>(graph.nodes[0].total.Of(unit));
  layout.boxes.push_back({0, 0, kMargin, kWidth - 2 * kMargin});
  for (size_t i = 0; i < layout.boxes.size(); ++i) {
    Box box = layout.boxes[i];
    layout.depth_max = std::max(layout.depth_max, box.depth);
    double x = box.x;
    for (int32_t child : children[static_cast<size_t>(box.node)]) {
      double width = static_cast<double>(graph.nodes[static_cast<size_t>(child)].total.Of(unit)) * scale;
      if (width < kFrameWidthMin || layout.boxes.size() >= kFramesMax) {
        ++layout.left_out;
      } else {
        layout.boxes.push_back({child, box.depth + 1, x, width});
      }
      x += width;
    }
  }
  return layout;
}

std::string FormatDrawn(const FlameGraph& graph, Values values, Unit unit) {
  return unit == Unit::kValue ? FormatValue(values.ns, graph.measure.unit)
                              : fmt::format("{} samples", FormatCount(values.count));
}

// Returns as much of the label as fits; "" if hardly anything fits.
std::string Label(std::string_view name, double width) {
  auto letters = static_cast<size_t>(std::max(0.0, (width - 6) / kLetterWidth));
  if (letters < 3) return "";
  return CutToWidth(name, letters);
}

std::string BoxMarkup(const FlameGraph& graph, const Box& box, Unit unit) {
  const FlameGraph::Node& node = graph.nodes[static_cast<size_t>(box.node)];
  std::string name = EscapeForDisplay(graph.NameOf(node));
  std::string executable = EscapeForDisplay(graph.ExecutableOf(node));
  double all = static_cast<double>(graph.nodes[0].total.Of(unit));
  std::string tooltip =
      fmt::format("{}\n{}total {} ({:.2f}%), self {} ({:.2f}%), {} samples", name,
                  executable.empty() ? "" : executable + (node.kind == kKernel ? " (kernel)\n" : "\n"),
                  FormatDrawn(graph, node.total, unit), 100.0 * static_cast<double>(node.total.Of(unit)) / all,
                  FormatDrawn(graph, node.self, unit), 100.0 * static_cast<double>(node.self.Of(unit)) / all,
                  FormatCount(node.total.count));
  double y = kHeaderHeight + box.depth * kRowHeight;
  std::string label = Label(name, box.width);
  return fmt::format(
      "<g class=\"f\" data-x=\"{:.3f}\" data-w=\"{:.3f}\" data-d=\"{}\" data-v=\"{}\"><title>{}</title>"
      "<rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\" rx=\"1\" fill=\"{}\"/>"
      "<text x=\"{:.2f}\" y=\"{:.0f}\">{}</text></g>\n",
      box.x, box.width, box.depth, node.total.Of(unit), EscapeXml(tooltip), box.x, y, std::max(box.width - 0.4, 0.02),
      kRowHeight - 1, FrameColor(name, graph.KindOf(node).color), box.x + 3, y + 12.5, EscapeXml(label));
}

std::string Summary(const FlameGraph& graph, const PictureOptions& options) {
  return fmt::format("{} {} in {} samples", FormatValue(graph.total.ns, graph.measure.unit),
                     MeasureTitle(graph.measure), FormatCount(graph.total.count)) +
         (options.unit == Unit::kCount ? ", drawn by samples" : "");
}

// Returns the svg element. It contains `style` and `script` if it is a file of its own.
std::string SvgElement(const FlameGraph& graph, const PictureOptions& options, bool standalone) {
  Layout layout = Place(graph, options.unit);
  double height = kHeaderHeight + (layout.depth_max + 1) * kRowHeight + kFooterHeight;
  std::string out = fmt::format(
      "<svg id=\"flamegraph\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"11\" "
      "data-margin=\"{2:.0f}\" "
      "data-width=\"{0:.0f}\" data-letter=\"{3}\">\n",
      kWidth, height, kMargin, kLetterWidth);
  if (standalone) out += fmt::format("<style>{}</style>\n", embedded::flame_graph_css());
  out += "<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n";
  out += fmt::format("<text class=\"title\" x=\"{:.0f}\" y=\"28\">{}</text>\n", kMargin,
                     EscapeXml(CutToWidth(EscapeForDisplay(options.title), 80)));
  out += fmt::format("<text class=\"note\" x=\"{:.0f}\" y=\"46\">{}</text>\n", kMargin,
                     EscapeXml(Summary(graph, options)));
  out += fmt::format(
      "<text class=\"button\" id=\"search\" x=\"{0:.0f}\" y=\"28\" text-anchor=\"end\">Search</text>\n"
      "<text class=\"button\" id=\"reset\" x=\"{1:.0f}\" y=\"28\" text-anchor=\"end\">Reset zoom</text>\n"
      "<text class=\"note\" id=\"found\" x=\"{0:.0f}\" y=\"46\" text-anchor=\"end\"></text>\n"
      "<text class=\"note\" id=\"details\" x=\"{2:.0f}\" y=\"64\"></text>\n",
      kWidth - kMargin, kWidth - kMargin - 70, kMargin);
  if (layout.boxes.empty()) {
    out += fmt::format("<text class=\"note\" x=\"{:.0f}\" y=\"{:.0f}\">No samples match.</text>\n", kMargin,
                       kHeaderHeight + 12);
  }
  out += "<g id=\"frames\">\n";
  for (const Box& box : layout.boxes) out += BoxMarkup(graph, box, options.unit);
  out += "</g>\n";
  std::string note =
      fmt::format("The root is at the top. The width of a frame is its share of {}. Click a frame to zoom.",
                  options.unit == Unit::kCount ? "the samples" : MeasureTitle(graph.measure));
  if (layout.left_out + graph.truncated_nodes > 0) {
    note +=
        fmt::format(" Small frames are left out: {} or more.", FormatCount(layout.left_out + graph.truncated_nodes));
  }
  out +=
      fmt::format("<text class=\"note\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", kMargin, height - 9, EscapeXml(note));
  if (standalone) out += fmt::format("<script><![CDATA[\n{}]]></script>\n", embedded::flame_graph_js());
  return out + "</svg>\n";
}

}  // namespace

std::string EscapeXml(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    size_t length = Utf8SequenceLength(text);
    auto c = static_cast<unsigned char>(text[0]);
    // XML does not allow U+FFFE and U+FFFF, in any notation.
    bool never = length == 3 && (text.starts_with("\xef\xbf\xbe") || text.starts_with("\xef\xbf\xbf"));
    if (length == 0 || never || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
      text.remove_prefix(1);
      continue;
    }
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string FrameColor(std::string_view name, std::string_view color) {
  // Hue, saturation and lightness, and how far a name may move the hue and the lightness.
  struct Palette {
    std::string_view color;
    double hue, hue_range, saturation, lightness, lightness_range;
  };
  static constexpr auto kPalettes = std::to_array<Palette>({
      {"file", 8, 38, 0.86, 0.60, 0.10},  // also for an unknown key
      {"kernel", 196, 30, 0.52, 0.62, 0.10},
      {"inlined", 84, 44, 0.44, 0.62, 0.08},
      {"python", 50, 8, 0.90, 0.62, 0.10},
      {"jit", 290, 30, 0.45, 0.70, 0.08},
      {"root", 36, 0, 0.25, 0.80, 0},
      {"unknown", 30, 0, 0.05, 0.68, 0.10},
  });
  const auto found =
      std::find_if(kPalettes.begin(), kPalettes.end(), [&](const Palette& p) { return p.color == color; });
  const Palette& palette = found != kPalettes.end() ? *found : kPalettes[0];
  uint32_t hash = 2'166'136'261u;  // FNV-1a: the same in every run and on every machine
  for (unsigned char c : name) hash = (hash ^ c) * 16'777'619u;
  const double a = (hash & 0xffff) / 65'535.0, b = (hash >> 16) / 65'535.0;
  const double hue = palette.hue + palette.hue_range * a, saturation = palette.saturation,
               lightness = palette.lightness + palette.lightness_range * b;
  std::array<int, 3> rgb;
  for (int i = 0; i < 3; ++i) {
    double k = std::fmod((i == 0 ? 0 : i == 1 ? 8 : 4) + hue / 30, 12);
    double value =
        lightness - saturation * std::min(lightness, 1 - lightness) * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    rgb[static_cast<size_t>(i)] = static_cast<int>(std::lround(255 * value));
  }
  return fmt::format("#{:02x}{:02x}{:02x}", rgb[0], rgb[1], rgb[2]);
}

std::string WriteSvg(const FlameGraph& graph, const PictureOptions& options) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + SvgElement(graph, options, true);
}

std::string WriteHtml(const FlameGraph& graph, const PictureOptions& options) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n<style>{}</style></head>\n"
      "<body><main>\n{}</main>\n<script>\n{}</script></body></html>\n",
      EscapeXml(EscapeForDisplay(options.title)), embedded::flame_graph_css(), SvgElement(graph, options, false),
      embedded::flame_graph_js());
}

}  // namespace tributary::cli
