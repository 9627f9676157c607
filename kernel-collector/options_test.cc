#include "kernel-collector/options.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/types.h"

namespace tributary {
namespace {

absl::StatusOr<CollectorOptions> Parse(std::vector<const char*> args, const Options::Environment& environment = {}) {
  args.insert(args.begin(), "kernel-collector");
  CollectorOptions options;
  auto outcome = ParseCollectorOptions(static_cast<int>(args.size()), args.data(), environment, &options);
  if (!outcome.ok()) return outcome.status();
  return options;
}

TEST(CollectorOptions, Defaults) {
  auto options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->intake_host, "127.0.0.1");
  EXPECT_EQ(options->intake_port, 8000);
  EXPECT_EQ(options->intake_encoder, "binary");
  EXPECT_EQ(options->sample_rate_hz, 19);
  EXPECT_EQ(options->batch_interval_ns, 5 * kNsPerSecond);
}

TEST(CollectorOptions, EnvironmentAndFlags) {
  Options::Environment environment = {{"EBPF_NET_INTAKE_HOST", "reducer"},
                                      {"EBPF_NET_INTAKE_PORT", "9000"},
                                      {"EBPF_NET_INTAKE_ENCODER", "binary"},
                                      {"EBPF_NET_SAMPLE_RATE", "99"}};
  auto options = Parse({"--sample-rate", "999", "--batch-interval=1s"}, environment);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->intake_host, "reducer");
  EXPECT_EQ(options->intake_port, 9000);
  EXPECT_EQ(options->sample_rate_hz, 999);
  EXPECT_EQ(options->batch_interval_ns, kNsPerSecond);
}

TEST(CollectorOptions, RefusesWhatMakesNoSense) {
  for (const char* flag :
       {"--sample-rate=0", "--sample-rate=10001", "--sample-rate=x", "--intake-port=0", "--intake-port=65536",
        "--intake-encoder=otlp_profiles", "--intake-encoder=", "--intake-host=", "--batch-interval=0s",
        "--batch-interval=2m", "--batch-interval=5", "--shutdown-timeout=1h", "--sampel-rate=19"}) {
    EXPECT_FALSE(Parse({flag}).ok()) << flag;
  }
  EXPECT_NE(Parse({"--intake-encoder=otlp_log"}).status().message().find("binary"), absl::string_view::npos);
}

}  // namespace
}  // namespace tributary
