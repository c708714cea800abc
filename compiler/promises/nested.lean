/-! ## The promise

Decisions `x`, data `s` and losses `f` of any sequence; `hf` is the convexity of the losses at the comparator `u`, `hconvex` that of the
constraints, `hmem` and `hproj` the rule: `x (t + 1)` is the point of the domain cut by all constraints seen that is nearest to
`x t - α⁻¹ • g t`, `α = √(2 ∑ ‖g‖ ^ 2) / S`. -/

theorem regret (x g : ℕ → Decision) (s : ℕ → Data) (f : ℕ → Decision → ℝ) (u : Decision)
    (hu : u ∈ domain) (hfeasible : ∀ t k, excess k u (s t) ≤ 0)
    (hs : ∀ t i, s t i ∈ Set.Icc (least i) (most i)) (hx0 : x 0 ∈ domain)
    (hg : ∀ t i, g t i = gradient (x t) (s t) i)
    (hf : ∀ t, f t (x t) - f t u ≤ inner ℝ (g t) (x t - u))
    (hconvex : ∀ t, Convex ℝ (seen s t)) (hmem : ∀ t, x (t + 1) ∈ seen s t)
    (hproj : ∀ t : ℕ, ‖x t - (√(∑ q ∈ range (t + 1), 2 * ‖g q‖ ^ 2) / S)⁻¹ • g t - x (t + 1)‖
      = ⨅ w : seen s t, ‖x t - (√(∑ q ∈ range (t + 1), 2 * ‖g q‖ ^ 2) / S)⁻¹ • g t - w‖) :
    ∑ t ∈ range T, (f t (x t) - f t u) ≤ R := by
  obtain ⟨n, hn⟩ : ∃ n, T = n + 1 := ⟨T - 1, by norm_num [T]⟩
  have hx : ∀ t, x t ∈ domain := fun t => by
    cases t with
    | zero => exact hx0
    | succ t => exact (hmem t).1
  have hG : ∀ t, ‖g t‖ ≤ G := fun t =>
    norm_le_of_entries (g t) slope G G_nonneg (fun i => by rw [hg t i]; exact entries ⟨hx t, hs t⟩ i) slope_le_G
  have hD : ∀ t, ‖x t - u‖ ≤ D := fun t => diameter (hx t) hu
  have hS : 0 < S := S_pos
  have square : ∀ t, 0 ≤ 2 * ‖g t‖ ^ 2 := fun t => by positivity
  have mono : Monotone fun t : ℕ => √(∑ q ∈ range (t + 1), 2 * ‖g q‖ ^ 2) / S :=
    monotone_nat_of_le_succ fun t => by
      have h := sum_range_succ (fun q => 2 * ‖g q‖ ^ 2) (t + 1)
      exact div_le_div_of_nonneg_right (Real.sqrt_le_sqrt (by linarith [square (t + 1)])) hS.le
  have zero : ∀ t, √(∑ q ∈ range (t + 1), 2 * ‖g q‖ ^ 2) / S = 0 → g t = 0 := fun t h => by
    have h1 : √(∑ q ∈ range (t + 1), 2 * ‖g q‖ ^ 2) = 0 := by
      rcases div_eq_zero_iff.1 h with h | h
      · exact h
      · exact absurd h hS.ne'
    have h2 := (Real.sqrt_eq_zero (sum_nonneg fun q _ => square q)).1 h1
    have h3 : 2 * ‖g t‖ ^ 2 ≤ ∑ q ∈ range (t + 1), 2 * ‖g q‖ ^ 2 :=
      single_le_sum (f := fun q => 2 * ‖g q‖ ^ 2) (fun q _ => square q) (mem_range.2 (Nat.lt_succ_self t))
    have h4 : ‖g t‖ ^ 2 = 0 := le_antisymm (by linarith) (sq_nonneg _)
    exact norm_eq_zero.1 (pow_eq_zero_iff two_ne_zero |>.1 h4)
  have main := regret_of_steps (seen s) hconvex x g u
    (fun t : ℕ => √(∑ q ∈ range (t + 1), 2 * ‖g q‖ ^ 2) / S) D mono
    (fun t => div_nonneg (Real.sqrt_nonneg _) hS.le) zero hmem hproj
    (fun t => ⟨hu, fun q _ k => hfeasible q k⟩) hD n
  have sums := sum_div_sqrt_le (fun q => 2 * ‖g q‖ ^ 2) square (n + 1)
  have each : ∑ t ∈ range (n + 1), ‖g t‖ ^ 2 / (2 * (√(∑ q ∈ range (t + 1), 2 * ‖g q‖ ^ 2) / S))
      = S / 4 * ∑ t ∈ range (n + 1), 2 * ‖g t‖ ^ 2 / √(∑ q ∈ range (t + 1), 2 * ‖g q‖ ^ 2) := by
    rw [mul_sum]
    exact sum_congr rfl fun t _ => by ring
  have total : ∑ q ∈ range (n + 1), 2 * ‖g q‖ ^ 2 ≤ 2 * (T : ℝ) * G ^ 2 := by
    have h : ∀ q ∈ range (n + 1), 2 * ‖g q‖ ^ 2 ≤ 2 * G ^ 2 := fun q _ => by
      linarith [pow_le_pow_left₀ (norm_nonneg _) (hG q) 2]
    refine (sum_le_sum h).trans (le_of_eq ?_)
    rw [sum_const, card_range, nsmul_eq_mul, hn]
    ring
  have root : √(∑ q ∈ range (n + 1), 2 * ‖g q‖ ^ 2) ≤ r * G := by
    refine Real.sqrt_le_iff.2 ⟨mul_nonneg r_nonneg G_nonneg, total.trans ?_⟩
    have := mul_le_mul_of_nonneg_right T_le_square (sq_nonneg G)
    nlinarith
  have convex := sum_le_sum fun t (_ : t ∈ range (n + 1)) => hf t
  have quarter : 0 ≤ S / 4 := by positivity
  have scaled := mul_le_mul_of_nonneg_left sums quarter
  have e : √(∑ q ∈ range (n + 1), 2 * ‖g q‖ ^ 2) / S * D ^ 2 / 2
        + S / 4 * (2 * √(∑ q ∈ range (n + 1), 2 * ‖g q‖ ^ 2))
      = √(∑ q ∈ range (n + 1), 2 * ‖g q‖ ^ 2) * ((D ^ 2 / S + S) / 2) := by ring
  have front : 0 ≤ (D ^ 2 / S + S) / 2 := by positivity
  have last := mul_le_mul_of_nonneg_right root front
  rw [hn]
  linarith [total_le_R]

end Promise
