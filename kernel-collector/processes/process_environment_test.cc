#include "kernel-collector/processes/process_environment.h"

#include <gtest/gtest.h>

#include "kernel-collector/processes/fakes_testing.h"
#include "profile/attributes.h"

namespace tributary {
namespace {

using std::string_literals::operator""s;

std::string Parsed(const std::string& environment, const std::vector<std::string>& names = {}) {
  return ParseProcessEnvironment(environment, names).attributes;
}

TEST(ProcessEnvironment, TakesOnlyTheTwoVariables) {
  EXPECT_EQ(Parsed("PATH=/bin\0OTEL_SERVICE_NAME=shop\0AWS_SECRET_ACCESS_KEY=x\0"
                   "OTEL_RESOURCE_ATTRIBUTES=service.version=1.2,deployment.environment.name=prod\0OTEL_SERVICE=y\0"s),
            "service.name=shop,service.version=1.2,deployment.environment.name=prod");
  EXPECT_EQ(Parsed("PATH=/bin\0HOME=/\0"s), "");
  EXPECT_EQ(Parsed(""), "");
}

TEST(ProcessEnvironment, TheServiceNameVariableTakesPrecedence) {
  EXPECT_EQ(Parsed("OTEL_RESOURCE_ATTRIBUTES=service.name=a\0OTEL_SERVICE_NAME=b\0"s), "service.name=b");
  EXPECT_EQ(Parsed("OTEL_SERVICE_NAME=\0OTEL_RESOURCE_ATTRIBUTES=service.name=a\0"s), "service.name=a");
  EXPECT_EQ(Parsed("OTEL_SERVICE_NAME=b\0OTEL_SERVICE_NAME=c\0"s), "service.name=b");  // as for getenv
}

TEST(ProcessEnvironment, TakesVariablesNamedByAnOperator) {
  EXPECT_EQ(Parsed("POD_NAME=web-1\0SECRET=x\0EMPTY=\0"s, {"POD_NAME", "EMPTY", "ABSENT"}),
            "process.environment_variable.EMPTY=,process.environment_variable.POD_NAME=web-1");
}

TEST(ProcessEnvironment, BytesOfAnyKindAreEncoded) {
  EXPECT_EQ(Parsed("OTEL_SERVICE_NAME=a,b=c\n\x1b\xff"s), "service.name=a%2Cb%3Dc%0A%1B%FF");  // no zero byte after it
  EXPECT_EQ(Parsed("OTEL_RESOURCE_ATTRIBUTES=\0"s), "");
  EXPECT_EQ(Parsed("OTEL_RESOURCE_ATTRIBUTES=,,=,x,%zz=1\0\0\0=\0OTEL_SERVICE_NAME"s), "%25zz=1");
}

TEST(ProcessEnvironment, IsBounded) {
  // A variable that is too long, and more attributes than fit: the service's own attributes come first.
  EXPECT_EQ(ParseProcessEnvironment("OTEL_SERVICE_NAME=" + std::string(1 << 20, 'x'), {}).dropped, 1u);
  std::string many = "OTEL_RESOURCE_ATTRIBUTES=";
  for (int i = 0; i < 1000; ++i) many += fmt::format("a{}=value,", i);
  ProcessEnvironment parsed = ParseProcessEnvironment(many + "service.version=7\0OTEL_SERVICE_NAME=shop"s, {});
  EXPECT_LE(parsed.attributes.size(), kEnvironmentAttributesBytesMax);
  EXPECT_GT(parsed.attributes.size(), kEnvironmentAttributesBytesMax - 20);
  Attributes attributes = DecodeAttributes(parsed.attributes);
  EXPECT_EQ(FindAttribute(attributes, "service.name"), "shop");
  EXPECT_EQ(FindAttribute(attributes, "service.version"), "7");
  EXPECT_EQ(attributes.size() + parsed.dropped, 1002u);
}

TEST(ProcessEnvironment, ATooLongValueDropsNoOtherValue) {
  ProcessEnvironment parsed = ParseProcessEnvironment(
      "OTEL_RESOURCE_ATTRIBUTES=a=" + std::string(5000, 'x') + ",b=1," + std::string(400, 'k') + "=2", {});
  EXPECT_EQ(parsed.attributes, "b=1");
  EXPECT_EQ(parsed.dropped, 2u);
}

class ReadEnvironment : public testing::Test {
 protected:
  absl::StatusOr<ProcessEnvironment> Read(std::string_view environment) {
    proc.AddProcess(5, {});
    FakeProc::Write(proc.proc() + "/5/environ", environment);
    return ReadProcessEnvironment(proc.proc(), Pid{5}, {});
  }
  FakeProc proc;
};

TEST_F(ReadEnvironment, OfAProcess) {
  EXPECT_EQ(Read("A=1\0OTEL_SERVICE_NAME=shop\0"s)->attributes, "service.name=shop");
  EXPECT_EQ(Read("")->attributes, "");
  EXPECT_FALSE(ReadProcessEnvironment(proc.proc(), Pid{6}, {}).ok());
}

TEST_F(ReadEnvironment, NoMoreThanOneMebibyte) {
  std::string big;
  while (big.size() < (1 << 20) - 70) big += "FILL" + std::to_string(big.size()) + "=" + std::string(50, 'x') + "\0"s;
  const std::string last = "OTEL_SERVICE_NAME=shop"s + std::string((1 << 20) - 23 - big.size(), 'x');
  // First the variable ends with the last byte that is read, its zero byte included. Then it ends one byte later.
  EXPECT_EQ(Read(big + last + "\0more=1\0"s)->attributes.substr(0, 17), "service.name=shop");
  EXPECT_EQ(Read(big + "x" + last + "\0more=1\0"s)->attributes, "");
  EXPECT_EQ(Read(std::string(3 << 20, 'x'))->attributes, "");
}

}  // namespace
}  // namespace tributary
