#include "k8s-collector/watch/json_splitter.h"

#include <gmock/gmock.h>

#include <vector>

#include "base/status.h"

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Split {
  std::vector<std::string> objects;
  absl::Status status;
  std::string rest;
  bool whole = false;
  uint64_t too_large = 0;
};

Split SplitAll(JsonSplitter::Shape shape, std::string_view text, size_t object_bytes_max = 1000) {
  JsonSplitter splitter(shape, object_bytes_max);
  Split out;
  out.status = splitter.Feed(text, [&](std::string_view object) {
    out.objects.emplace_back(object);
    return true;
  });
  out.rest = splitter.rest();
  out.whole = splitter.whole();
  out.too_large = splitter.too_large();
  return out;
}

constexpr auto kObjects = JsonSplitter::Shape::kObjects;
constexpr auto kItems = JsonSplitter::Shape::kItems;

TEST(JsonSplitter, SplitsConsecutiveObjects) {
  const Split split = SplitAll(kObjects, R"( {"a":{"b":[1,{}]}}{"c":"}{\"\\"})"
                                         "\n\n{}\n");
  EXPECT_TRUE(split.status.ok());
  EXPECT_THAT(split.objects, ElementsAre(R"({"a":{"b":[1,{}]}})", R"({"c":"}{\"\\"})", "{}"));
  EXPECT_TRUE(split.whole);
}

TEST(JsonSplitter, AnswersMayBeCutAnywhere) {
  const std::string text = R"({"a":{"b":[1,{}],"\\":"}{\"["}}{"c\\":["]\\\"{"]})";
  const Split whole = SplitAll(kObjects, text);
  ASSERT_EQ(whole.objects.size(), 2u);
  for (size_t cut = 0; cut < text.size(); ++cut) {
    JsonSplitter splitter(kObjects, 1000);
    std::vector<std::string> objects;
    for (const std::string& part : {text.substr(0, cut), text.substr(cut, 1), text.substr(cut + 1)}) {
      const auto take = [&](std::string_view object) {
        objects.emplace_back(object);
        return true;
      };
      ASSERT_TRUE(splitter.Feed(part, take).ok());
    }
    EXPECT_EQ(objects, whole.objects) << cut;
  }
}

TEST(JsonSplitter, TakesTheItemsOutOfAList) {
  const Split split = SplitAll(
      kItems, R"({"kind":"L","metadata":{"items":[{}],"x":"\"items\":["}, "items" : [ {"a":[]} , {"b":{}} ],"z":1})");
  EXPECT_TRUE(split.status.ok());
  EXPECT_THAT(split.objects, ElementsAre(R"({"a":[]})", R"({"b":{}})"));
  EXPECT_EQ(split.rest, R"({"kind":"L","metadata":{"items":[{}],"x":"\"items\":["}, "items" : [],"z":1})");
  EXPECT_TRUE(split.whole);
}

TEST(JsonSplitter, ANullOrEmptyListHasNoItems) {
  EXPECT_THAT(SplitAll(kItems, R"({"items":[]})").objects, IsEmpty());
  EXPECT_TRUE(SplitAll(kItems, R"({"items":null})").status.ok());
  EXPECT_FALSE(SplitAll(kItems, R"({"items":[{"a":1})").whole);
}

TEST(JsonSplitter, RefusesOtherTexts) {
  for (const char* text : {"<html>", "[]", "1", "\"a\"", "{} x", "{\"items\":[{}]} {", "{\"items\":[1]}"}) {
    EXPECT_FALSE(SplitAll(kItems, text).status.ok()) << text;
  }
  for (const char* text : {"<html>", "[]", "null", "{}<", "{},{}"})
    EXPECT_FALSE(SplitAll(kObjects, text).status.ok()) << text;
  EXPECT_THAT(Message(SplitAll(kObjects, "<h1>no</h1>").status), HasSubstr("<h1>no"));
}

TEST(JsonSplitter, LeavesOutTooLargeObjects) {
  const std::string large = "{\"a\":\"" + std::string(2000, '{') + "\"}";
  const Split split = SplitAll(kObjects, "{\"a\":1}" + large + "{\"b\":2}");
  EXPECT_THAT(split.objects, ElementsAre("{\"a\":1}", "{\"b\":2}"));
  EXPECT_EQ(split.too_large, 1u);
}

TEST(JsonSplitter, TakesAnObjectOfTheMaximumSize) {
  const std::string object = "{\"a\":\"" + std::string(92, 'x') + "\"}";
  EXPECT_EQ(SplitAll(kObjects, object, object.size()).too_large, 0u);
  EXPECT_EQ(SplitAll(kObjects, object, object.size() - 1).too_large, 1u);
}

TEST(JsonSplitter, LimitsTheTextAroundTheItems) {
  EXPECT_FALSE(SplitAll(kItems, "{\"x\":\"" + std::string(100'000, 'x')).status.ok());
}

TEST(JsonSplitter, StopsWhenTakeReturnsFalse) {
  JsonSplitter splitter(kObjects, 100);
  int taken = 0;
  EXPECT_TRUE(splitter.Feed("{}{}{}", [&](std::string_view) { return ++taken < 2; }).ok());
  EXPECT_EQ(taken, 2);
}

}  // namespace
}  // namespace tributary
