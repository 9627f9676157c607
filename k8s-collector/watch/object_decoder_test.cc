#include "k8s-collector/watch/object_decoder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;

constexpr char kPod[] = R"({
  "kind": "Pod",
  "metadata": {
    "name": "web-1", "namespace": "shop", "uid": "6f1c", "resourceVersion": "77",
    "creationTimestamp": "2026-11-23T00:40:00Z", "generation": 3,
    "labels": {"app": "web", "pod-template-hash": "5d4"}, "annotations": {"note": "two\nlines"},
    "ownerReferences": [{"kind": "Other", "name": "o", "uid": "1"},
                        {"kind": "ReplicaSet", "name": "web-5d4", "uid": "2", "controller": true}],
    "managedFields": [{"fieldsV1": {"f:metadata": {"f:labels": {}}}}]
  },
  "spec": {"nodeName": "node-a", "hostname": "web", "containers": [{"name": "c", "image": "web:1"}],
           "initContainers": [{"name": "i", "image": "init:1"}], "ephemeralContainers": [{"name": "e", "image": "sh"}]},
  "status": {"podIP": "10.1.2.3",
    "containerStatuses": [{"name": "c", "containerID": "containerd://abc", "image": "docker.io/web:1", "imageID": "web@sha256:12",
      "restartCount": 2, "lastState": {"terminated": {"containerID": "containerd://old"}}}],
    "initContainerStatuses": [{"name": "i", "containerID": "containerd://def", "lastState": {}}]}
})";

TEST(ObjectDecoder, ReadsAPod) {
  ObjectDecoder decoder;
  auto pod = decoder.DecodeObject(kPod);
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(pod->name, "web-1");
  EXPECT_EQ(pod->name_space, "shop");
  EXPECT_EQ(pod->uid, "6f1c");
  EXPECT_EQ(pod->resource_version, "77");
  EXPECT_EQ(pod->created, "2026-11-23T00:40:00Z");
  EXPECT_THAT(pod->labels, ElementsAre(Pair("app", "web"), Pair("pod-template-hash", "5d4")));
  EXPECT_THAT(pod->annotations, ElementsAre(Pair("note", "two\nlines")));
  ASSERT_NE(pod->controller(), nullptr);
  EXPECT_EQ(pod->controller()->name, "web-5d4");
  EXPECT_EQ(pod->node_name, "node-a");
  EXPECT_EQ(pod->host_name, "web");
  EXPECT_EQ(pod->ip, "10.1.2.3");
  ASSERT_THAT(pod->containers, SizeIs(3));
  EXPECT_TRUE(pod->containers[0].is_main);
  EXPECT_FALSE(pod->containers[1].is_main);
  ASSERT_THAT(pod->statuses, SizeIs(2));
  EXPECT_EQ(pod->statuses[0].id, "containerd://abc");
  EXPECT_EQ(pod->statuses[0].last_id, "containerd://old");
  EXPECT_EQ(pod->statuses[0].restarts, 2);
  EXPECT_EQ(pod->left_out, 0u);
}

TEST(ObjectDecoder, LimitsItsResults) {
  std::string annotations, owners, containers;
  for (int i = 0; i < 1000; ++i) {
    annotations += fmt::format("{}\"a{}\":\"{}\"", i == 0 ? "" : ",", i, std::string(1000, 'x'));
    owners += fmt::format("{}{{\"kind\":\"K\"}}", i == 0 ? "" : ",");
    containers += fmt::format("{}{{\"name\":\"c{}\"}}", i == 0 ? "" : ",", i);
  }
  ObjectDecoder decoder;
  auto pod = decoder.DecodeObject(fmt::format(
      R"({{"metadata":{{"annotations":{{{},"large":"{}"}},"ownerReferences":[{}]}},"spec":{{"containers":[{}]}}}})",
      annotations, std::string(100'000, 'x'), owners, containers));
  ASSERT_TRUE(pod.ok());
  EXPECT_THAT(pod->annotations, SizeIs(KubeObject::kLabelsMax));
  EXPECT_THAT(pod->owners, SizeIs(KubeObject::kOwnersMax));
  EXPECT_THAT(pod->containers, SizeIs(KubeObject::kContainersMax));
  EXPECT_EQ(pod->left_out, 1001u - 256 + 1000 - 16 + 1000 - 256);
}

TEST(ObjectDecoder, IgnoresFieldsOfAnotherType) {
  ObjectDecoder decoder;
  auto pod = decoder.DecodeObject(
      R"({"metadata":{"name":5,"labels":["a"],"annotations":{"a":1,"b":"c"},"ownerReferences":{}},"spec":[],"status":{"podIP":{},"containerStatuses":[1]}})");
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(pod->name, "");
  EXPECT_THAT(pod->labels, SizeIs(0));
  EXPECT_THAT(pod->annotations, ElementsAre(Pair("b", "c")));
  EXPECT_THAT(pod->statuses, SizeIs(0));
}

TEST(ObjectDecoder, RefusesOtherTexts) {
  ObjectDecoder decoder;
  std::string deep = "{\"metadata\":";
  for (int i = 0; i < 100; ++i) deep += "[";
  for (const std::string& json : {std::string(), std::string("{"), std::string("[]"), std::string("{}"),
                                  std::string("{\"metadata\":1}"), std::string("{\"metadata\":{\"name\":\"\xc3\"}}"),
                                  std::string("{\"metadata\":{\"name\":\"\\ud800\"}}"), deep}) {
    EXPECT_FALSE(decoder.DecodeObject(json).ok()) << json;
  }
  EXPECT_TRUE(decoder.DecodeObject(kPod).ok());
}

TEST(ObjectDecoder, ReadsEvents) {
  ObjectDecoder decoder;
  const auto type = [&](std::string_view json) { return decoder.DecodeEvent(json)->type; };
  EXPECT_EQ(type(R"({"type":"ADDED","object":{"metadata":{}}})"), WatchEvent::Type::kPut);
  EXPECT_EQ(type(R"({"type":"MODIFIED","object":{"metadata":{}}})"), WatchEvent::Type::kPut);
  EXPECT_EQ(type(R"({"type":"DELETED","object":{"metadata":{}}})"), WatchEvent::Type::kDeleted);
  EXPECT_EQ(type(R"({"type":"BOOKMARK","object":{"metadata":{}}})"), WatchEvent::Type::kBookmark);
  EXPECT_EQ(type(R"({"type":"NEW","object":{}})"), WatchEvent::Type::kUnknown);
  auto error = decoder.DecodeEvent(R"({"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}})");
  EXPECT_EQ(error->error.code, 410);
  EXPECT_EQ(error->error.message, "too old");
  EXPECT_FALSE(decoder.DecodeEvent(R"({"type":"ADDED"})").ok());
}

TEST(ObjectDecoder, ReadsTheEndOfAList) {
  ObjectDecoder decoder;
  auto end =
      decoder.DecodeListEnd(R"({"kind":"PodList","metadata":{"resourceVersion":"5","continue":"t"},"items":[]})");
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->resource_version, "5");
  EXPECT_EQ(end->more, "t");
  EXPECT_FALSE(decoder.DecodeListEnd(R"({"kind":"Pod","metadata":{"resourceVersion":"5"}})").ok());
  EXPECT_FALSE(decoder.DecodeListEnd(R"({"kind":"PodList","metadata":{}})").ok());
}

TEST(ObjectDecoder, AcceptsAnyErrorBody) {
  ObjectDecoder decoder;
  EXPECT_EQ(decoder.DecodeError(R"({"kind":"Status","code":403,"message":"no"})").message, "no");
  EXPECT_EQ(decoder.DecodeError("<html>").code, 0);
}

}  // namespace
}  // namespace tributary
