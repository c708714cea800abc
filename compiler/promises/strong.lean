/-! ## Strongly convex losses

Steps of inverse length `(t + 1) / c`, and losses that are `1 / c`-strongly convex. -/

section StrongDescent

variable {E : Type*} [NormedAddCommGroup E] [InnerProductSpace ℝ E]

theorem telescope_strong (c : ℝ) (δ : ℕ → ℝ) (n : ℕ) :
    ∑ t ∈ range n, (((t : ℝ) + 1) / c * (δ t ^ 2 - δ (t + 1) ^ 2) - δ t ^ 2 / c) = -((n : ℝ) / c * δ n ^ 2) := by
  induction n with
  | zero => simp
  | succ n ih =>
    rw [sum_range_succ, ih]
    push_cast
    ring

theorem regret_of_strong_steps (K : ℕ → Set E) (hK : ∀ t, Convex ℝ (K t)) (x g : ℕ → E) (u : E) {c G L : ℝ}
    (hc : 0 < c) (hx : ∀ t, x (t + 1) ∈ K t)
    (hstep : ∀ t : ℕ, ‖x t - (((t : ℝ) + 1) / c)⁻¹ • g t - x (t + 1)‖
      = ⨅ w : K t, ‖x t - (((t : ℝ) + 1) / c)⁻¹ • g t - w‖)
    (hu : ∀ t, u ∈ K t) (hG : ∀ t, ‖g t‖ ≤ G) (n : ℕ) (hn : 0 < n) (hL : (n : ℝ) ≤ Real.exp L) :
    ∑ t ∈ range n, (inner ℝ (g t) (x t - u) - ‖x t - u‖ ^ 2 / (2 * c)) ≤ c * G ^ 2 / 2 * (1 + L) := by
  have pos : ∀ t : ℕ, 0 < ((t : ℝ) + 1) / c := fun t => div_pos (by positivity) hc
  have each : ∀ t ∈ range n, inner ℝ (g t) (x t - u) - ‖x t - u‖ ^ 2 / (2 * c)
      ≤ (((t : ℝ) + 1) / c * (‖x t - u‖ ^ 2 - ‖x (t + 1) - u‖ ^ 2) - ‖x t - u‖ ^ 2 / c) / 2
        + c * G ^ 2 / 2 * (1 / ((t : ℝ) + 1)) := fun t _ => by
    have step := step_bound (hK t) (pos t).le (fun h => absurd h (pos t).ne') (hx t) (hstep t) (hu t)
    have h := pow_le_pow_left₀ (norm_nonneg _) (hG t) 2
    have q : 0 < 2 * (((t : ℝ) + 1) / c) := mul_pos two_pos (pos t)
    have small := div_le_div_of_nonneg_right h q.le
    have e : G ^ 2 / (2 * (((t : ℝ) + 1) / c)) = c * G ^ 2 / 2 * (1 / ((t : ℝ) + 1)) := by ring
    have e' : ‖x t - u‖ ^ 2 / (2 * c) = ‖x t - u‖ ^ 2 / c / 2 := by ring
    rw [e] at small
    rw [e']
    linarith
  have summed := sum_le_sum each
  rw [sum_add_distrib, ← sum_div, ← mul_sum, telescope_strong c (fun t => ‖x t - u‖) n] at summed
  have last : 0 ≤ (n : ℝ) / c * ‖x n - u‖ ^ 2 := mul_nonneg (div_nonneg (Nat.cast_nonneg n) hc.le) (sq_nonneg _)
  have log : ((harmonic n : ℚ) : ℝ) ≤ 1 + Real.log n := harmonic_le_one_add_log n
  have sums : ((harmonic n : ℚ) : ℝ) = ∑ t ∈ range n, 1 / ((t : ℝ) + 1) := by simp [harmonic, one_div]
  have small : Real.log n ≤ L := (Real.log_le_iff_le_exp (Nat.cast_pos.2 hn)).2 hL
  rw [sums] at log
  have factor : 0 ≤ c * G ^ 2 / 2 := by positivity
  have scaled := mul_le_mul_of_nonneg_left (log.trans (by linarith : 1 + Real.log n ≤ 1 + L)) factor
  linarith

end StrongDescent
