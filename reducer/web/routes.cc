#include "reducer/web/routes.h"

namespace tributary {
namespace {

struct Route {
  std::string_view method;  // "": any
  std::string_view path;    // with a slash at its end: all paths below it
  Needs needs;
};

// The first route that matches counts. Paths without a route (the files of the page, /healthz, /readyz) need nothing.
constexpr Route kRoutes[] = {
    {"PUT", kUploadPath, {true, Right::kUpload}}, {"DELETE", kUploadPath, {true, Right::kAdmin}},
    {"", kWhoAmIPath, {true, std::nullopt}},      {"", "/api/", {true, Right::kRead}},
    {"", "/metrics", {true, Right::kRead}},
};

bool Matches(const Route& route, std::string_view method, std::string_view path) {
  if (!route.method.empty() && route.method != method) return false;
  return route.path.ends_with('/') ? path.starts_with(route.path) : path == route.path;
}

}  // namespace

Needs NeedsOf(std::string_view method, std::string_view path) {
  for (const Route& route : kRoutes) {
    if (Matches(route, method, path)) return route.needs;
  }
  return {};
}

}  // namespace tributary
