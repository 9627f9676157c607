#pragma once

#include <span>
#include <string_view>

namespace tributary::embedded {

// The files of the web page, as the web server sends them. They are part of the binary, so views stay valid for ever.
// Call it on any thread. Empty in a build without the page (-DTRIBUTARY_UI=OFF).
struct Asset {
  std::string_view path;          // "index.html"
  std::string_view content_type;  // "text/html; charset=utf-8"
  std::string_view bytes;
};

std::span<const Asset> UiAssets();

}  // namespace tributary::embedded
