/-! ## Violation under a memory of all rounds

`e t` is the excess of round `t`, `b t` the data's part of it. -/

/-- Largest of `b 0, ..., b n`. -/
noncomputable def runningMax (b : ℕ → ℝ) : ℕ → ℝ
  | 0 => b 0
  | n + 1 => max (runningMax b n) (b (n + 1))

theorem runningMax_attained (b : ℕ → ℝ) (n : ℕ) : ∃ r ≤ n, runningMax b n = b r := by
  induction n with
  | zero => exact ⟨0, le_rfl, rfl⟩
  | succ n ih =>
    obtain ⟨r, hr, e⟩ := ih
    rcases le_total (runningMax b n) (b (n + 1)) with h | h
    · exact ⟨n + 1, le_rfl, max_eq_right h⟩
    · exact ⟨r, hr.trans (Nat.le_succ n), (max_eq_left h).trans e⟩

theorem violation_le (e b : ℕ → ℝ) (he : ∀ t, ∀ r ≤ t, e (t + 1) ≤ b (t + 1) - b r) (n : ℕ) :
    ∑ t ∈ range (n + 1), max (e t) 0 ≤ max (e 0) 0 + (runningMax b n - b 0) := by
  induction n with
  | zero => simp [runningMax]
  | succ n ih =>
    obtain ⟨r, hr, er⟩ := runningMax_attained b n
    have grows : max (e (n + 1)) 0 ≤ runningMax b (n + 1) - runningMax b n := by
      have h1 : b (n + 1) ≤ runningMax b (n + 1) := le_max_right _ _
      have h2 : runningMax b n ≤ runningMax b (n + 1) := le_max_left _ _
      have h3 := he n r hr
      exact max_le (by linarith) (by linarith)
    rw [sum_range_succ]
    linarith
