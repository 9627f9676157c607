#include "base/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace tributary {
namespace {

TEST(JsonWriter, PutsCommasBetweenItems) {
  JsonWriter json;
  json.BeginObject();
  json.Field("a", uint64_t{1});
  json.Key("b");
  json.BeginArray();
  json.Number(int64_t{-1});
  json.Bool(true);
  json.Null();
  json.BeginObject();
  json.EndObject();
  json.EndArray();
  json.Field("c", "x");
  json.EndObject();
  EXPECT_EQ(std::move(json).Take(), R"({"a":1,"b":[-1,true,null,{}],"c":"x"})");
}

TEST(JsonWriter, EscapesSpecialAndInvalidBytes) {
  JsonWriter json;
  json.String("\"\\\n\x1b\xc2\x9b\xc2\xa0<img>&\xff✓");
  EXPECT_EQ(std::move(json).Take(), "\"\\\"\\\\\\u000a\\u001b\\u009b\xc2\xa0\\u003cimg\\u003e\\u0026\\ufffd✓\"");
}

TEST(JsonWriter, WritesNullForNan) {
  JsonWriter json;
  json.BeginArray();
  json.Number(std::numeric_limits<double>::quiet_NaN());
  json.Number(0.5);
  json.EndArray();
  EXPECT_EQ(std::move(json).Take(), "[null,0.5]");
}

}  // namespace
}  // namespace tributary
