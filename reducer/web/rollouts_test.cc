#include "reducer/web/rollouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "reducer/query/resource_query_testing.h"

namespace tributary {
namespace {

using testing::HasSubstr;
using testing::Not;

class RolloutsTest : public ResourceQueryTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ResourceQueryTest::SetUp());
    log_.emplace(RolloutLog::Options{}, *metadata_, now_, metrics_);
    ReportPod("1", {});
  }
  void ReportRollout(const std::string& id, int64_t at_ns) {
    log_->Take(kCluster, {.entities = {{.kind = EntityKind::kRollout,
                                        .id = id,
                                        .from = At(at_ns),
                                        .attributes = {{"rollout.hash", "b"},
                                                       {"rollout.images", "web:2"},
                                                       {"rollout.previous.hash", "a"},
                                                       {"rollout.previous.images", "web:1"},
                                                       {"rollout.previous.service.version", "1.0"},
                                                       {"service.version", "2.0"}}}}});
  }
  std::string Json(std::string_view selector, RolloutsRequest request = {}) {
    const absl::StatusOr<std::string> json = RolloutsJson(*engine_, &*log_, Request(selector), request, now_.Unix());
    EXPECT_TRUE(json.ok()) << json.status();
    return json.value_or("");
  }

  std::optional<RolloutLog> log_;
};

TEST_F(RolloutsTest, HasTheCpuTimeOfBothSides) {
  AddSample(10 * kNsPerSecond, 2, 3, work_, 5);
  AddSample(11 * kNsPerSecond, 1, 1, work_, 1000);  // on the host
  AddSample(31 * kNsPerSecond, 2, 3, work_, 7, 2);
  ReportRollout("deployment/shop/web/b", 30 * kNsPerSecond);
  const std::string json = Json("{}", {.with_cpu = true});
  EXPECT_THAT(
      json,
      HasSubstr(
          R"("kind":"deployment","namespace":"shop","name":"web","environment":"","executable":"",)"
          R"("hash":"b","images":"web:2","version":"2.0","previous":{"hash":"a","images":"web:1","version":"1.0"})"));
  EXPECT_THAT(json, testing::ContainsRegex(R"("before":.[^}]*"cpu_ns":5,"count":1)"));
  EXPECT_THAT(json, testing::ContainsRegex(R"("after":.[^}]*"cpu_ns":7,"count":2)"));
  EXPECT_THAT(json, HasSubstr(R"("type":"cpu","unit":"nanoseconds","rollouts":[)"));
  EXPECT_THAT(json, HasSubstr(R"("truncated":false)"));
  EXPECT_THAT(Json("{}"), testing::AllOf(Not(HasSubstr("before")), Not(HasSubstr("unit"))));
}

TEST_F(RolloutsTest, ASelectorSelectsWorkloadsWithItsSamples) {
  AddSample(10 * kNsPerSecond, 1, 1, work_, 1000);
  AddSample(10 * kNsPerSecond, 2, 3, work_, 5);
  ReportRollout("deployment/shop/web/b", 30 * kNsPerSecond);
  ReportRollout("deployment/shop/cart/b", 31 * kNsPerSecond);
  EXPECT_THAT(Json("{}"), HasSubstr("cart"));
  EXPECT_THAT(Json(R"({service_name="web"})"), HasSubstr(R"("name":"web")"));
  EXPECT_THAT(Json(R"({service_name="web"})"), Not(HasSubstr("cart")));
  EXPECT_THAT(Json(R"({process_pid="100"})"), HasSubstr(R"("rollouts":[])"));
}

TEST_F(RolloutsTest, ReportsWhetherTheListIsTruncated) {
  for (int i = 0; i < 3; ++i) ReportRollout("deployment/shop/web/" + std::to_string(i), i * kNsPerSecond);
  EXPECT_THAT(Json("{}", {.limit = 2}), HasSubstr(R"("truncated":true)"));
  EXPECT_THAT(Json("{}", {.limit = 3}), HasSubstr(R"("truncated":false)"));
}

// Each process is a service of its own.
TEST_F(RolloutsTest, ReportsThatWorkloadsOfTheSelectorAreMissing) {
  store::FakeShard& shard = store_.shards[0];
  const store::ProcessRow row = shard.processes[0];
  const auto add_services = [&](uint32_t first, uint32_t last) {
    for (uint32_t no = first; no <= last; ++no) {
      shard.processes.push_back(row);
      shard.processes.back().no = store::ProcessNo{no};
      shard.processes.back().attributes = "service.name=s" + std::to_string(no);
      AddSample(no, no, 1, work_, 5);
    }
  };
  add_services(10, 10'008);
  EXPECT_THAT(Json(R"({process_command="truth"})"), HasSubstr(R"("truncated":false)"));
  add_services(10'009, 10'010);
  EXPECT_THAT(Json(R"({process_command="truth"})"), HasSubstr(R"("truncated":true)"));
}

TEST_F(RolloutsTest, ReadsTheStoreOnceForAllRollouts) {
  AddSample(10 * kNsPerSecond, 2, 3, work_, 5);
  for (int i = 0; i < 100; ++i) ReportRollout("deployment/shop/web/" + std::to_string(i), (20 + i) * kNsPerSecond / 4);
  store_.readers_opened = 0;
  const std::string json = Json("{}", {.limit = 100, .with_cpu = true});
  EXPECT_LE(store_.readers_opened.load(), 4);
  size_t before = 0, after = 0;
  for (size_t at = 0; (at = json.find(R"("cpu_ns":5)", at)) != json.npos; ++at) {
    ++(json.rfind(R"("before")", at) > json.rfind(R"("after")", at) || json.rfind(R"("after")", at) == json.npos
           ? before
           : after);
  }
  EXPECT_EQ(after, 21u) << "rollouts at 5 s to 10 s";
  EXPECT_EQ(before, 79u);
}

TEST_F(RolloutsTest, AWindowContainsItsBeginAndNotItsEnd) {
  AddSample(30 * kNsPerSecond - 1, 2, 3, work_, 1);
  AddSample(30 * kNsPerSecond, 2, 3, work_, 2);
  AddSample(40 * kNsPerSecond, 2, 3, work_, 4);
  ReportRollout("deployment/shop/web/a", 30 * kNsPerSecond);
  ReportRollout("deployment/shop/web/b", 40 * kNsPerSecond);
  const std::string json = Json("{}", {.with_cpu = true});
  EXPECT_THAT(json,
              testing::ContainsRegex(R"("before":.[^}]*"cpu_ns":3,"count":2..*"after":.[^}]*"cpu_ns":4,"count":1)"));
  EXPECT_THAT(json,
              testing::ContainsRegex(R"("before":.[^}]*"cpu_ns":1,"count":1..*"after":.[^}]*"cpu_ns":6,"count":2)"));
}

TEST_F(RolloutsTest, NamesCannotInjectIntoTheSelector) {
  ReportRollout(R"(deployment/a"b\c/d",x="/h)", 30 * kNsPerSecond);
  EXPECT_THAT(Json("{}", {.with_cpu = true}), HasSubstr(R"("cpu_ns":0)"));
}

TEST_F(RolloutsTest, ReportsRolloutsOfServices) {
  store_.shards[0].processes[0].attributes = "service.name=checkout,deployment.environment.name=prod";
  AddSample(10 * kNsPerSecond, 1, 1, work_, 5);
  AddSample(11 * kNsPerSecond, 2, 3, work_, 1000);
  const auto add_service = [&](std::string_view id, const std::string& environment, int64_t at_ns) {
    Attributes attributes = {{"deployment.environment.name", environment},
                             {"process.executable.name", "server"},
                             {"rollout.hash", "77aa"},
                             {"rollout.previous.hash", "9f3c"},
                             {"service.name", "checkout"}};
    EXPECT_TRUE(log_->AddService(std::string(id), At(at_ns), std::move(attributes)));
  };
  add_service("1", "prod", 12 * kNsPerSecond);
  add_service("2", "staging", 13 * kNsPerSecond);
  const std::string prod = R"("kind":"service","namespace":"","name":"checkout","environment":"prod","executable":)"
                           R"("server","hash":"77aa","images":"","version":"")";
  const std::string json = Json("{}", {.with_cpu = true});
  EXPECT_THAT(json, HasSubstr(prod));
  EXPECT_THAT(json, HasSubstr("staging"));
  EXPECT_THAT(json, testing::ContainsRegex(R"("before":.[^}]*"cpu_ns":5,"count":1)"));
  EXPECT_THAT(json, Not(HasSubstr(R"("cpu_ns":1000)")));
  EXPECT_THAT(Json(R"({service_name="checkout"})"), HasSubstr(prod));
  EXPECT_THAT(Json(R"({deployment_environment_name="prod"})"), HasSubstr(prod));
  EXPECT_THAT(Json(R"({deployment_environment_name="prod"})"), Not(HasSubstr("staging")));
  EXPECT_THAT(Json(R"({service_name="web"})"), HasSubstr(R"("rollouts":[])"));
}

TEST_F(RolloutsTest, IsEmptyWithoutALog) {
  const auto json = RolloutsJson(*engine_, nullptr, Request("{}"), {}, now_.Unix());
  ASSERT_TRUE(json.ok());
  EXPECT_THAT(*json, HasSubstr(R"("rollouts":[])"));
}

}  // namespace
}  // namespace tributary
