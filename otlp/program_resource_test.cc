#include "otlp/program_resource.h"

#include <gtest/gtest.h>

#include <regex>

#include "base/version.h"

namespace tributary::otlp {
namespace {

TEST(ProgramResourceTest, NamesTheProcess) {
  const Attributes resource = otlp::ProgramResource("tributary-x", "node-7", UnixNs{5});
  EXPECT_EQ(FindAttribute(resource, "service.name"), "tributary-x");
  EXPECT_EQ(FindAttribute(resource, "service.version"), kVersion);
  EXPECT_EQ(FindAttribute(resource, "host.name"), "node-7");
  EXPECT_EQ(otlp::ProgramResource("tributary-x", "node-7", UnixNs{5}), resource)
      << "all exporters of a process have the same resource";
  EXPECT_EQ(FindAttribute(otlp::ProgramResource("tributary-x", "", UnixNs{5}), "host.name"), "");
}

TEST(ProgramResourceTest, EachRunHasAnIdOfItsOwn) {
  const std::string id = InstanceId("host", 7, UnixNs{5});
  EXPECT_TRUE(std::regex_match(id, std::regex("[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")))
      << id;
  EXPECT_NE(id, InstanceId("other", 7, UnixNs{5}));
  EXPECT_NE(id, InstanceId("host", 8, UnixNs{5}));
  EXPECT_NE(id, InstanceId("host", 7, UnixNs{6}));
}

}  // namespace
}  // namespace tributary::otlp
