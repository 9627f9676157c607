#include "intake/send_window.h"

#include <gtest/gtest.h>

namespace tributary::intake {
namespace {

Outgoing Of(size_t samples, uint64_t pending) {
  Outgoing out;
  out.batch.samples.resize(samples);
  out.pending = pending;
  return out;
}

TEST(SendWindow, ToldPendingIsThatOfTheNewestBatchThatCounts) {
  SendWindow window;
  window.Add(Of(3, 20));
  window.Add(Of(5, 16));
  window.Add(Of(7, 0));
  window.Ack(1, [](const SendWindow::Entry&) {});
  EXPECT_EQ(window.pending_told(), 0u);
  EXPECT_EQ(window.GiveUp().size(), 2u);
  EXPECT_EQ(window.pending_told(), 20u) << "what is given up told nothing";
  window.Settle(2);
  EXPECT_EQ(window.pending_told(), 16u) << "but one of them was stored, and its reducer waits for 16 samples";
  EXPECT_EQ(window.durable().captured, 8u);
  window.Add(Of(0, 0));
  EXPECT_EQ(window.pending_told(), 0u);
}

}  // namespace
}  // namespace tributary::intake
