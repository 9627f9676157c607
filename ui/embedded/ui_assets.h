#pragma once

#include <span>
#include <string_view>

namespace tributary::embedded {

// A file of the web page, as the web server sends it. UiAssets returns all files, on any thread. It returns none in a
// build without the page (-DTRIBUTARY_UI=OFF). The files are part of the binary, so the views are always valid.
struct Asset {
  std::string_view path;          // "index.html"
  std::string_view content_type;  // "text/html; charset=utf-8"
  std::string_view bytes;
};

std::span<const Asset> UiAssets();

}  // namespace tributary::embedded
