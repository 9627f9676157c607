#include "ui/embedded/ui_assets.h"

#if TRIBUTARY_UI
#include <array>

#include "embedded/app_css.h"
#include "embedded/app_js.h"
#include "embedded/favicon_svg.h"
#include "embedded/index_html.h"
#endif

namespace tributary::embedded {

std::span<const Asset> UiAssets() {
#if TRIBUTARY_UI
  static const std::array<Asset, 4> kAssets = {{
      {"index.html", "text/html; charset=utf-8", index_html()},
      {"app.js", "text/javascript; charset=utf-8", app_js()},
      {"app.css", "text/css; charset=utf-8", app_css()},
      {"favicon.svg", "image/svg+xml", favicon_svg()},
  }};
  return kAssets;
#else
  return {};
#endif
}

}  // namespace tributary::embedded
