#include "reducer/web/routes.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(Routes, TheFilesOfThePageAndHealthChecksNeedNothing) {
  for (const char* path : {"/", "/app.js", "/healthz", "/readyz", "/nothing", "/api", "/metrics/"}) {
    EXPECT_FALSE(NeedsOf("GET", path).sign_in) << path;
  }
}

TEST(Routes, EverythingElseNeedsARight) {
  for (const char* path : {"/metrics", "/api/", "/api/v1/top", "/api/v1/symbols", "/api/v1/status", "/api/v2/new",
                           "/api/v1/whoami/", "/api//v1/whoami"}) {
    for (const char* method : {"GET", "HEAD", "POST", "put"}) {
      EXPECT_TRUE(NeedsOf(method, path).sign_in) << path;
      EXPECT_EQ(NeedsOf(method, path).right, Right::kRead) << path;
    }
  }
  EXPECT_EQ(NeedsOf("PUT", "/api/v1/symbols").right, Right::kUpload);
  EXPECT_EQ(NeedsOf("DELETE", "/api/v1/symbols").right, Right::kAdmin);
  EXPECT_TRUE(NeedsOf("GET", "/api/v1/whoami").sign_in);
  EXPECT_FALSE(NeedsOf("GET", "/api/v1/whoami").right.has_value());
}

}  // namespace
}  // namespace tributary
