#include "base/reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace tributary {
namespace {

using testing::HasSubstr;
using testing::Not;

class ReloaderTest : public testing::Test {
 protected:
  // Reloads with the result `found`. Returns the log.
  std::string Reload(absl::StatusOr<Reloader::Reloaded> found) {
    found_ = std::move(found);
    testing::internal::CaptureStderr();
    reloader_.Reload();
    return testing::internal::GetCapturedStderr();
  }
  static std::vector<OptionValue> Values(const std::string& rate, const std::string& level, const std::string& node,
                                         const std::string& secret) {
    return {{"sample-rate", rate, true}, {"log-level", level, true}, {"node-id", node, false}, {"key", secret, false}};
  }
  Metrics metrics_;
  absl::StatusOr<Reloader::Reloaded> found_ = Reloader::Reloaded{};
  Reloader reloader_{{.metric = "tributary_test_reloads_total",
                      .in_force = Values("19", "info", "a", "secret-1"),
                      .reload = [this] { return found_; }},
                     metrics_};
};

TEST_F(ReloaderTest, NamesChangesAndPendingRestarts) {
  std::string log = Reload(Reloader::Reloaded{.values = Values("99", "info", "b", "secret-2")});
  EXPECT_THAT(log, HasSubstr("reloaded changed=sample-rate\n"));
  EXPECT_THAT(log, HasSubstr("some changed options take effect only after a restart options=node-id,key\n"));
  EXPECT_THAT(log, Not(HasSubstr("secret")));
  // An option that needs a restart is named until the restart. An applied option is named once.
  log = Reload(Reloader::Reloaded{.values = Values("99", "info", "b", "secret-1")});
  EXPECT_THAT(log, HasSubstr("reloaded changed=none\n"));
  EXPECT_THAT(log, HasSubstr("options=node-id\n"));
  log = Reload(Reloader::Reloaded{.values = Values("19", "info", "a", "secret-1"), .refused = {"sample-rate"}});
  EXPECT_THAT(log, HasSubstr("options=sample-rate\n"));
  EXPECT_THAT(metrics_.PrometheusText(), HasSubstr("tributary_test_reloads_total{result=\"ok\"} 3\n"));
}

TEST_F(ReloaderTest, AFailureIsOneErrorAndChangesNothing) {
  const std::string log = Reload(Error(absl::StatusCode::kInvalidArgument, "no such key"));
  EXPECT_THAT(log, HasSubstr(" error reload failed, all options keep their values cause=\"no such key\"\n"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
  EXPECT_THAT(metrics_.PrometheusText(), HasSubstr("tributary_test_reloads_total{result=\"failed\"} 1\n"));
  EXPECT_THAT(Reload(Reloader::Reloaded{.values = Values("19", "info", "a", "secret-1")}), HasSubstr("changed=none\n"));
}

TEST_F(ReloaderTest, AppliesTheLogLevelAndLogsTheChangeAtEitherLevel) {
  auto with = [](LogLevel level, const std::string& name) {
    return Reloader::Reloaded{.values = Values("19", name, "a", "secret-1"), .log_level = level};
  };
  EXPECT_THAT(Reload(with(LogLevel::kError, "error")), HasSubstr("changed=log-level"));
  EXPECT_FALSE(LogEnabled(LogLevel::kWarning));
  EXPECT_THAT(Reload(with(LogLevel::kInfo, "info")), HasSubstr("changed=log-level"));
  EXPECT_TRUE(LogEnabled(LogLevel::kInfo));
}

}  // namespace
}  // namespace tributary
