/-! ## The promise

Decisions `x`, data `s` and losses `f` of any sequence; `hf` is the convexity of the losses at the comparator `u`, `hw` and `hx` the rule:
`x t` is proportional to weights that begin at one and are multiplied with `exp (-c g)`. -/

theorem regret (x g w : ℕ → Decision) (s : ℕ → Data) (f : ℕ → Decision → ℝ) (u : Decision)
    (hu0 : ∀ i, 0 ≤ u i) (hu1 : ∑ i, u i = 1) (hs : ∀ t i, s t i ∈ Set.Icc (least i) (most i))
    (hin : ∀ t i, x t i ∈ Set.Icc (lower i) (upper i))
    (hg : ∀ t i, g t i = gradient (x t) (s t) i)
    (hf : ∀ t, f t (x t) - f t u ≤ ∑ i, g t i * (x t i - u i))
    (hw0 : ∀ i, w 0 i = 1) (hw : ∀ t i, w (t + 1) i = w t i * Real.exp (-(c * g t i)))
    (hx : ∀ t i, x t i = w t i / ∑ j, w t j) :
    ∑ t ∈ range T, (f t (x t) - f t u) ≤ R := by
  have hG : ∀ t i, |g t i| ≤ G := fun t i => by
    rw [hg t i]
    exact (entries ⟨hin t, hs t⟩ i).trans (slope_le_G i)
  have hc : 0 < c := c_pos
  have hL : ((d : ℕ) : ℝ) ≤ Real.exp L := entropy.trans (Real.sum_le_exp_of_nonneg L_nonneg _)
  have each : ∀ i ∈ univ, u i * (c * (∑ t ∈ range T, ∑ j, x t j * g t j - ∑ t ∈ range T, g t i))
      ≤ u i * (L + T * ((1 / 2 + 2 * (c * G) / 9) * (c * G) ^ 2)) := fun i _ =>
    mul_le_mul_of_nonneg_left (regret_of_weights w g x hw0 hw hx hc hG step_le_one hL T i) (hu0 i)
  have summed := sum_le_sum each
  rw [← sum_mul, hu1, one_mul] at summed
  have left : ∑ i, u i * (c * (∑ t ∈ range T, ∑ j, x t j * g t j - ∑ t ∈ range T, g t i))
      = c * ∑ t ∈ range T, ∑ i, g t i * (x t i - u i) := by
    have e1 : ∑ i, u i * (c * (∑ t ∈ range T, ∑ j, x t j * g t j - ∑ t ∈ range T, g t i))
        = (∑ i, u i) * (c * ∑ t ∈ range T, ∑ j, x t j * g t j) - c * ∑ i, ∑ t ∈ range T, u i * g t i := by
      rw [sum_mul, mul_sum, ← sum_sub_distrib]
      refine sum_congr rfl fun i _ => ?_
      rw [← mul_sum]
      ring
    rw [e1, hu1, one_mul, sum_comm, ← mul_sub, ← sum_sub_distrib]
    congr 1
    refine sum_congr rfl fun t _ => ?_
    rw [← sum_sub_distrib]
    exact sum_congr rfl fun i _ => by ring
  rw [left] at summed
  have convex := sum_le_sum fun t (_ : t ∈ range T) => hf t
  refine convex.trans (le_trans ?_ total_le_R)
  rw [le_div_iff₀ hc]
  linarith

end Promise
