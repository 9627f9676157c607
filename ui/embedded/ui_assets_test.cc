#include "ui/embedded/ui_assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

namespace tributary::embedded {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::map<std::string_view, Asset> ByPath() {
  std::map<std::string_view, Asset> assets;
  for (const Asset& asset : UiAssets()) assets[asset.path] = asset;
  return assets;
}

TEST(UiAssets, ContainsTheWholePage) {
  std::map<std::string_view, Asset> assets = ByPath();
  ASSERT_EQ(assets.size(), 4u);
  EXPECT_THAT(std::string(assets["index.html"].bytes), StartsWith("<!doctype html>"));
  EXPECT_THAT(std::string(assets["favicon.svg"].bytes), StartsWith("<svg"));
  EXPECT_GT(assets["app.js"].bytes.size(), 10'000u);
  EXPECT_GT(assets["app.css"].bytes.size(), 1'000u);
  EXPECT_EQ(assets["app.js"].content_type, "text/javascript; charset=utf-8");
}

// The page is served with `default-src 'self'`, so the browser would refuse inline scripts and styles.
TEST(UiAssets, HasNoInlineScriptsOrStyles) {
  const std::string page(ByPath()["index.html"].bytes);
  EXPECT_THAT(page, HasSubstr("<script type=\"module\" src=\"app.js\"></script>"));
  EXPECT_THAT(page, Not(HasSubstr("style=")));
  EXPECT_THAT(page, Not(HasSubstr("onload=")));
  EXPECT_THAT(std::string(ByPath()["app.css"].bytes), Not(HasSubstr("url(")));
}

TEST(UiAssets, ContainsNoOtherServersAddress) {
  for (const Asset& asset : UiAssets()) {
    size_t at = 0;
    const std::string text(asset.bytes);
    while ((at = text.find("://", at)) != std::string::npos) {
      // XML namespaces are names, not addresses.
      const std::string around = text.substr(at, 13);
      EXPECT_EQ(around, "://www.w3.org") << asset.path << ": " << text.substr(at > 20 ? at - 20 : 0, 80);
      ++at;
    }
  }
}

}  // namespace
}  // namespace tributary::embedded
