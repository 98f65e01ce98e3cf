/// What a scripted guest is asked to be: words NAME=VALUE of its command line.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

namespace troupe::guest::scripted {

struct Script {
  nlohmann::json tensors = nlohmann::json::parse(R"([["w", [3]], ["b", []]])");
  nlohmann::json statistics = nlohmann::json::array();
  bool optimizer = true;
  bool mirrors = false;
  std::int64_t samples = 40, batch = 4, epochs = 1;
  double lr = 0.1;
  double momentum = 0;                        // of its optimizer, whose state is then a velocity for each parameter
  std::size_t state_bytes = 0;                // its state is filled up to as many
  std::size_t state_piece = (16 << 20) - 16;  // the most bytes of the state in one frame
  double carry = 0;  // each step's gradient has this part of the one before, which only this process knows
  int noise = -1;    // the step, from 1, from which the gradients have random parts from the system; -1: never
  std::string program = "0123456789abcdef";  // its fingerprint
  std::string log;                           // a file: what it hears and does, a line each; empty: none
  std::string output;                        // printed at once
  std::int64_t lines = 0;                    // as many are printed in its first step
  std::int64_t samples_here = 0;             // of those that `who` means, in place of `samples`; 0: as all
  bool schedule = false;                     // its learning rate falls to 0 with the run's progress
  int pause_ms = 0;                          // of each step: makes a run as long as a test needs

  // One fault, in place of the `nth` frame of type `when` ("JOIN": before it connects; "END": after its last batch):
  // kill, exit:CODE, say:TEXT (prints it and exits with 3), failed:TEXT, aborted:TEXT (fails, and is killed by its own end), orphan (exits, and leaves a child with its connection), close, half, hang,
  // twice, bytewise, descriptor (sends one with the frame), raw:HEX, text:PAYLOAD, as:TYPE (an empty frame of it).
  // "fuzz:SEED": any frame may be another.
  std::string fault;
  std::string when = "DONE";
  int nth = 1;
  std::string who = "any";  // a worker's number, "workers", "evaluator"; before WELCOME the evaluator is worker 0
  std::string once;         // a folder that is made when the fault happens, which then happens to nobody else
  std::string go;           // a file: the fault waits until it exists

  [[nodiscard]] static Script of(int count, char** words);
};

}  // namespace troupe::guest::scripted
